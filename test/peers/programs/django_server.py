"""
A real authorization server: Django OAuth Toolkit, with the client credentials grant. Reads its clients as JSON from stdin, prints the URL of its token
endpoint, and ends when stdin ends. Needs Debian's python3-django-oauth-toolkit.
"""
import json
import logging
import sys
import threading
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

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
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:peers?mode=memory&cache=shared"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    OAUTH2_PROVIDER={"SCOPES": {OPTIONS["scope"]: "the only one"}},
    LOGGING_CONFIG=None,
)
django.setup()
urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]


class Quiet(WSGIRequestHandler):
    def log_message(self, format, *args):
        pass


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


from oauth2_provider.models import Application  # Needs the configured Django.

call_command("migrate", verbosity=0)
for client in OPTIONS["clients"]:
    Application.objects.create(
        client_id=client["id"],
        client_secret=client["secret"],
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )
server = make_server("127.0.0.1", 0, get_wsgi_application(), server_class=Server, handler_class=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/o/token/"}), flush=True)
sys.stdin.read()
