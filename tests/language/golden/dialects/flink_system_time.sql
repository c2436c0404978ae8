SELECT * FROM flights f JOIN planes FOR SYSTEM_TIME AS OF f.ts AS p ON f.flight = p.flight
