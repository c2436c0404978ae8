SELECT TO_TIMESTAMP_LTZ(distance, 6) FROM flights
