SELECT customer, spent FROM {{ ref('spending') }} WHERE spent > 100
