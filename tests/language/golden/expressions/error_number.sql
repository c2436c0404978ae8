SELECT 12abc FROM flights
