SELECT EXTRACT(HOUR FROM ts - day) AS h, CAST(ts - day AS STRING) AS t, CAST(ts - day AS BIGINT) AS n FROM flights
