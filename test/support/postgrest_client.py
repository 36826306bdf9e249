"""Calls of the Python client of PostgREST. Prints what each returned, as one JSON document."""

import json
import sys

from postgrest import APIError, CountMethod, SyncPostgrestClient

url, token = sys.argv[1:3]
client = SyncPostgrestClient(url, headers={"Authorization": f"Bearer {token}"})


def error_of(call):
    try:
        call.execute()
    except APIError as error:
        return error.code
    return None


posts = client.from_("posts")
listed = posts.select("id", count=CountMethod.exact).order("id").limit(2).execute()
report = {
    "list": [listed.data, listed.count],
    "filters": posts.select("title").eq("writer", "ann").gte("views", 15).execute().data,
    "or": posts.select("id").or_("id.eq.1,title.eq.Three").order("id").execute().data,
    "one": posts.select("title").eq("id", 2).single().execute().data,
    "nothing": posts.select("title").eq("id", 99).maybe_single().execute(),
    "csv": posts.select("id,writer").eq("id", 3).csv().execute().data,
    "insert": posts.insert({"title": "Four", "writer": "ann"}).execute().data,
    "upsert": posts.upsert({"id": 4, "title": "Vier", "writer": "ann"}).execute().data,
    "update": posts.update({"views": 5}).eq("id", 4).execute().data,
    "delete": posts.delete().eq("id", 4).execute().data,
    "rpc": client.rpc("whoami", {}).execute().data,
    "errors": [error_of(client.from_("nowhere").select("*")), error_of(posts.insert({"title": "x", "writer": "bob"}))],
}
print(json.dumps(report))
