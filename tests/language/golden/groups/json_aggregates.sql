SELECT JSON_AGG(id ORDER BY ts DESC), JSON_OBJECT_AGG(id, extra) FILTER (WHERE id > 3), MAP_AGG(tags[1], id) AS m FROM parcels
