select "UserID"
from hits
where "UserID" = 435090932899640449
