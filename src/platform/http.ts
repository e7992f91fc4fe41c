/**
 * The used parts of node:http without an import statement, which would read every export: that of the WebSocket client loads the
 * whole of fetch.
 */
const { Agent, METHODS, STATUS_CODES, createServer, get, request } = process.getBuiltinModule('node:http');

export { Agent, METHODS, STATUS_CODES, createServer, get, request };
