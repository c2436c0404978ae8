SELECT * FROM flights WHERE mz_now() <= ts + INTERVAL '5 minutes'
