/**
 * node:http without an import of it: that reads all that the module exports, and one of those is a WebSocket client, which Node.js
 * brings along with the whole of fetch and loads when it is looked at.
 */
const { Agent, METHODS, STATUS_CODES, createServer, get, request } = process.getBuiltinModule('node:http');

export { Agent, METHODS, STATUS_CODES, createServer, get, request };
