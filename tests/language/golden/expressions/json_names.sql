SELECT extra #> '{a,0,"b c"}' AS x, extra #>> '{a,name}' FROM parcels WHERE extra #>> '{a,b}' = 'x'
