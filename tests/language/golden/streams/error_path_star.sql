CREATE STREAM s (a STRING PATH '$.meta[*]')
