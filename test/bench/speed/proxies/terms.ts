/** The settings of every proxy of the benchmark, from its environment. */
import { readFileSync } from 'node:fs';

function readVariable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

export const PORT = Number(readVariable('PROXY_PORT'));
export const UPSTREAM = readVariable('PROXY_UPSTREAM');
export const AUTHORIZATION = readVariable('PROXY_AUTHORIZATION');
/** The authority to trust for an upstream that speaks TLS. */
export const CA = readFileSync(readVariable('PROXY_CA_FILE'));
/** To the upstream, at most. */
export const CONNECTIONS = Number(readVariable('PROXY_CONNECTIONS'));
