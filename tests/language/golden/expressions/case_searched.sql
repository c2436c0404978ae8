SELECT CASE WHEN delay > 60 THEN 'late' WHEN delay > 15 THEN 'soon' ELSE NULL END FROM flights
