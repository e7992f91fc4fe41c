/**
 * The error bodies of the simulated API: problem+json (RFC 9457), marked as simulated. The real API's are unknown.
 */
import { STATUS_CODES } from '../platform/http.ts';
import type { OutgoingHttpHeaders } from 'node:http';
import { jsonResponse } from './loopback-server.ts';
import type { SandboxResponse } from './loopback-server.ts';

/**
 * A problem answer; its title is the status in words.
 * @param members further members of the body
 * @param fields further header fields
 */
export function problemResponse(
  status: number,
  detail: string,
  members: object = {},
  fields: OutgoingHttpHeaders = {},
): SandboxResponse {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, ...members, simulated: true };
  return jsonResponse(status, problem, { 'content-type': 'application/problem+json', ...fields });
}
