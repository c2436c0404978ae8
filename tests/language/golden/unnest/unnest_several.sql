SELECT tag, weight FROM parcels, UNNEST(tags, weights) AS t (tag, weight)
