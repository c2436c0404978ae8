SELECT extra #> '{a,,b}' FROM parcels
