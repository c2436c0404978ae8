SELECT * FROM flights WHERE cancelled || cancelled
