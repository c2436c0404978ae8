SELECT delay * 2 + 1, (distance - flight) / 10, -delay, flight % 7, price * 1.5, 'it''s' AS s, NULL AS nothing FROM flights
