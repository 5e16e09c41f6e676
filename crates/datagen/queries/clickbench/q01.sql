select count(*)
from hits
