select "URLHash", "EventDate", count(*) as pageviews
from hits
where "CounterID" = 62
  and "EventDate" >= date '2013-07-01'
  and "EventDate" <= date '2013-07-31'
  and "IsRefresh" = 0
  and "TraficSourceID" in (-1, 6)
  and "RefererHash" = 3594120000172545465
group by "URLHash", "EventDate"
order by pageviews desc, "URLHash", "EventDate"
limit 10 offset 100
