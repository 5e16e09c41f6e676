select sum(v1) as v1, sum(v2) as v2, count(*) as matches
from j1
join j1_small on j1.id1 = j1_small.id1
