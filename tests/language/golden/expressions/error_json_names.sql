SELECT extra #> '$.a' FROM parcels
