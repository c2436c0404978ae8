SELECT OVERLAY(dest, 'x', 2) FROM flights
