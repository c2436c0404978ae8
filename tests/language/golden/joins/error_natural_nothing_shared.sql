SELECT airport FROM weather w NATURAL JOIN planes p
