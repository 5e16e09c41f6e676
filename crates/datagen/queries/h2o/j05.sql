select sum(v1) as v1, sum(v2) as v2, count(*) as matches
from j1
join j1_big on j1.id3 = j1_big.id3
