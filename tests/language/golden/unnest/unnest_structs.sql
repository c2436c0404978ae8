SELECT id, stop.city, (stop).at FROM parcels, UNNEST(stops) AS stop
