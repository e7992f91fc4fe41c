/** httpxy with an agent that keeps connections. */
import { Agent, createServer } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { createProxyServer } from 'httpxy';
import { AUTHORIZATION, CA, CONNECTIONS, PORT, UPSTREAM } from './terms.ts';

const terms = { keepAlive: true, maxSockets: CONNECTIONS, maxFreeSockets: CONNECTIONS };
const agent = UPSTREAM.startsWith('https:') ? new TlsAgent({ ...terms, ca: CA }) : new Agent(terms);
const proxy = createProxyServer({ target: UPSTREAM, agent, headers: { authorization: AUTHORIZATION } });
createServer((request, response) => {
  proxy.web(request, response).catch(() => response.destroy());
}).listen(PORT, '127.0.0.1');
