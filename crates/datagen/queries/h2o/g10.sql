select sum(v3) as v3, sum(cnt) as cnt, count(*) as groups
from (
    select id1, id2, id3, id4, id5, id6, sum(v3) as v3, count(*) as cnt
    from g1
    group by id1, id2, id3, id4, id5, id6
) grouped
