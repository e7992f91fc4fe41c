"""
A real authorization server: Authlib's on Flask, with the client credentials grant. Reads its clients as JSON from stdin, prints the URL of its token
endpoint, and ends when stdin ends. Needs Debian's python3-authlib and python3-flask.
"""
import json
import logging
import os
import sys
import threading

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # Loopback.

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from flask import Flask
from werkzeug.serving import make_server

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # It logs each request.
ASSERTION = JWTBearerClientAssertion.CLIENT_AUTH_METHOD
OPTIONS = json.loads(sys.stdin.readline())


class Client(ClientMixin):
    def __init__(self, registration):
        self.registration = registration

    def get_client_id(self):
        return self.registration["id"]

    def get_allowed_scope(self, scope):
        return scope if scope == OPTIONS["scope"] else ""

    def check_client_secret(self, client_secret):
        return client_secret == self.registration.get("secret")

    def check_endpoint_auth_method(self, method, endpoint):
        registered = self.registration["method"]
        return method == (ASSERTION if registered == "private_key_jwt" else registered)

    def check_grant_type(self, grant_type):
        return grant_type == "client_credentials"


class ClientCredentials(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", ASSERTION]


class Assertion(JWTBearerClientAssertion):
    used = set()

    def validate_jti(self, claims, jti):
        is_new = jti not in self.used
        self.used.add(jti)
        return is_new

    def resolve_client_public_key(self, client, headers):
        return client.registration["jwk"]


clients = {each["id"]: Client(each) for each in OPTIONS["clients"]}
app = Flask(__name__)
authorization = AuthorizationServer(app, query_client=clients.get, save_token=lambda token, request: None)
authorization.register_grant(ClientCredentials)


@app.post("/oauth/token")
def issue_token():
    return authorization.create_token_response()


server = make_server("127.0.0.1", 0, app, threaded=True)
url = f"http://127.0.0.1:{server.port}/oauth/token"
authorization.register_client_auth_method(ASSERTION, Assertion(url))
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"url": url}), flush=True)
sys.stdin.read()
