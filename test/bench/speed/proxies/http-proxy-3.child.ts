/** http-proxy-3 with an agent that keeps connections. */
import { Agent, createServer } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import httpProxy from 'http-proxy-3';
import { AUTHORIZATION, CA, CONNECTIONS, PORT, UPSTREAM } from './terms.ts';

const terms = { keepAlive: true, maxSockets: CONNECTIONS, maxFreeSockets: CONNECTIONS };
const agent = UPSTREAM.startsWith('https:') ? new TlsAgent({ ...terms, ca: CA }) : new Agent(terms);
const proxy = httpProxy.createProxyServer({ target: UPSTREAM, agent, headers: { authorization: AUTHORIZATION } });
proxy.on('error', (_error, _request, response) => response.destroy());
createServer((request, response) => proxy.web(request, response)).listen(PORT, '127.0.0.1');
