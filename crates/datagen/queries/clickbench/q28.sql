select "CounterID", avg(length("URL")) as l, count(*) as c
from hits
where "URL" <> ''
group by "CounterID"
having count(*) > 100000
order by l desc
limit 25
