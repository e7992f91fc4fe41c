/** What every proxy of the benchmark is told, by its environment. */
import { readFileSync } from 'node:fs';

function told(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

export const PORT = Number(told('PROXY_PORT'));
export const UPSTREAM = told('PROXY_UPSTREAM');
export const AUTHORIZATION = told('PROXY_AUTHORIZATION');
/** The authority to trust for an upstream that speaks TLS. */
export const CA = readFileSync(told('PROXY_CA_FILE'));
/** To the upstream, at most. */
export const CONNECTIONS = Number(told('PROXY_CONNECTIONS'));
