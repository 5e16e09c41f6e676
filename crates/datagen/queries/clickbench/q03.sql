select sum("AdvEngineID"), count(*), avg("ResolutionWidth")
from hits
