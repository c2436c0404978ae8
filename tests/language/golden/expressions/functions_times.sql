SELECT EXTRACT(hour FROM ts), YEAR(day), DATE_TRUNC('hour', ts), TO_TIMESTAMP(1000), EPOCH_MS(ts), DATE_PART('dow', ts) FROM flights
