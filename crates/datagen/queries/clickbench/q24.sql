select *
from hits
where "URL" like '%google%'
order by "EventTime", "WatchID"
limit 10
