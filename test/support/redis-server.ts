/** redis-server on a given port of 127.0.0.1, which keeps nothing on disk. */
import { startServerProgram } from './server-program.ts';
import type { ServerProgram } from './server-program.ts';

/** @param args further arguments of redis-server */
export function startRedisServer(port: number, args: readonly string[] = []): Promise<ServerProgram> {
  const settings = { port: String(port), bind: '127.0.0.1', save: '', appendonly: 'no', loglevel: 'warning' };
  const common = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  return startServerProgram('redis-server', { args: [...common, ...args], port, printsErrors: true });
}
