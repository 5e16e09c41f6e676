select "RegionID", count(distinct "UserID") as u
from hits
group by "RegionID"
order by u desc, "RegionID"
limit 10
