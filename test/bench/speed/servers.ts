/** The configurations of nginx, HAProxy and Caddy: one worker, kept connections on both sides, the bearer put in, no log. */
import type { SubjectStartOptions } from './subjects.ts';

interface ProxyConfiguration {
  readonly port: number;
  readonly folder: string;
  readonly authorization: string;
  readonly place: SubjectStartOptions;
}

export function nginxConfiguration({ port, folder, authorization, place }: ProxyConfiguration): string {
  const { host, protocol } = new URL(place.upstreamUrl);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; worker_processes 1; worker_rlimit_nofile 16384; pid ${folder}/nginx.pid;
    events { worker_connections 8192; }
    http {
      ${temporary.join(' ')}
      access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s; client_body_buffer_size 128k;
      upstream behind { server ${host}; keepalive 2048; keepalive_requests 1000000000; keepalive_timeout 3600s; }
      server {
        listen 127.0.0.1:${port} backlog=4096;
        location / {
          proxy_pass ${protocol}//behind;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header Host ${host};
          proxy_set_header Authorization "${authorization}";
          proxy_ssl_trusted_certificate ${place.caFile}; proxy_ssl_verify on; proxy_ssl_name localhost;
        }
      }
    }
  `;
}

export function haproxyConfiguration({ port, authorization, place }: ProxyConfiguration): string {
  const { host, protocol } = new URL(place.upstreamUrl);
  const tls = protocol === 'https:' ? `ssl verify required ca-file ${place.caFile} verifyhost localhost` : '';
  return `global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 3600s
  timeout server 60s
frontend in
  bind 127.0.0.1:${port} backlog 4096
  default_backend behind
backend behind
  http-reuse always
  http-request set-header Authorization "${authorization}"
  server behind ${host} ${tls}
`;
}

export function caddyConfiguration({ port, authorization, place }: ProxyConfiguration): string {
  const { host, protocol } = new URL(place.upstreamUrl);
  const tls = protocol === 'https:' ? `tls\n tls_trusted_ca_certs ${place.caFile}` : '';
  return `{
  admin off
  auto_https off
  log {
    output discard
  }
}
http://127.0.0.1:${port} {
  reverse_proxy ${host} {
    header_up Authorization "${authorization}"
    header_up Host ${host}
    transport http {
      keepalive 3600s
      keepalive_idle_conns 2048
      keepalive_idle_conns_per_host 2048
      ${tls}
    }
  }
}
`;
}
