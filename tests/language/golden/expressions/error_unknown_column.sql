SELECT carrier,
       delai
FROM flights
