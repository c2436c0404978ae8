SELECT * FROM flights WHERE dest LIKE carrier
