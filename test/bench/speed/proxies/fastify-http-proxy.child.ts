/** @fastify/http-proxy over its undici pool. */
import httpProxy from '@fastify/http-proxy';
import fastify from 'fastify';
import { AUTHORIZATION, CA, CONNECTIONS, PORT, UPSTREAM } from './terms.ts';

const server = fastify({ logger: false });
await server.register(httpProxy, {
  upstream: UPSTREAM,
  undici: { connections: CONNECTIONS, pipelining: 1, connect: { ca: CA } },
  replyOptions: { rewriteRequestHeaders: (_request, headers) => ({ ...headers, authorization: AUTHORIZATION }) },
});
await server.listen({ port: PORT, host: '127.0.0.1' });
