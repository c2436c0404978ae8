SELECT AVG(light) AS light FROM reading [RANGE 30 SECONDS]
