select sum(v1) as v1, sum(v2) as v2, count(*) as matches
from j1
join j1_medium on j1.id5 = j1_medium.id5
