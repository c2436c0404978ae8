SELECT xway, dir, seg, AVG(speed) AS lav
FROM (SELECT xway, dir, seg, vid, AVG(spd) AS speed FROM report [RANGE 5 MINUTES] GROUP BY xway, dir, seg, vid)
GROUP BY xway, dir, seg
