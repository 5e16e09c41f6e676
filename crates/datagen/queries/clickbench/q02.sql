select count(*)
from hits
where "AdvEngineID" <> 0
