SELECT carrier, dest, ts FROM flights [RANGE 6 HOURS] EXCEPT ALL ON (dest) SELECT dest, wind FROM weather [RANGE 6 HOURS]
