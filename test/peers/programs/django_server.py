"""
A real authorization server: Django OAuth Toolkit, with the client credentials grant. Reads its clients as JSON from stdin, prints the URL of its token
endpoint, and ends when stdin ends. Needs Debian's python3-django-oauth-toolkit.
"""
import json
import logging
import os
import sys
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import include, path

logging.getLogger("django").setLevel(logging.ERROR)  # It logs each refusal.
OPTIONS = json.loads(sys.stdin.readline())
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    SECRET_KEY="of this process alone",
    ROOT_URLCONF=__name__,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    OAUTH2_PROVIDER={"SCOPES": {OPTIONS["scope"]: "the only one"}},
    LOGGING_CONFIG=None,
)
django.setup()
urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]


class Quiet(WSGIRequestHandler):
    def log_message(self, format, *args):
        pass


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


from oauth2_provider.models import Application  # Needs the configured Django.

call_command("migrate", verbosity=0)
for client in OPTIONS["clients"]:
    Application.objects.create(
        client_id=client["id"],
        client_secret=client["secret"],
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )
server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/o/token/"}), flush=True)
threading.Thread(target=end_with_stdin, daemon=True).start()
server.serve_forever()  # In the thread that has the database in memory.
