SELECT id, seats FROM parcels, UNNEST(STRING_TO_ARRAY(ARRAY_TO_STRING(tags, ' '), ' ')) AS tag JOIN planes ON model = tag WHERE id > 3 AND seats > 100
