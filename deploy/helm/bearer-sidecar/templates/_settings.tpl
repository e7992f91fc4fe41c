{{/* The names that the user has set, in config or by extraEnv, each with its value ("from" for one that a reference brings). Empty counts as not set. */}}
{{- define "bearer-sidecar.given" -}}
{{- $given := dict -}}
{{- range $name, $value := .Values.config -}}
{{- if ne (toString $value) "" -}}
{{- $_ := set $given $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if or .value .valueFrom -}}
{{- $_ := set $given .name (.value | default "from" | toString) -}}
{{- end -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}

{{/* Whether a configuration file is mounted: "true" or nothing. */}}
{{- define "bearer-sidecar.hasFile" -}}
{{- $given := include "bearer-sidecar.given" . | fromYaml -}}
{{- if or .Values.configFile.content .Values.configFile.volume (hasKey $given "SIDECAR_CONFIG") -}}true{{- end -}}
{{- end -}}

{{/* The configuration file as text, from a text or from values. */}}
{{- define "bearer-sidecar.fileContent" -}}
{{- with .Values.configFile.content -}}
{{- if kindIs "string" . -}}{{ . }}{{- else -}}{{ toYaml . }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* What would fail only when a pod starts, or not at all: without restartPolicy an init container that never ends keeps the app away. */}}
{{- define "bearer-sidecar.checkCluster" -}}
{{- if and (eq .Values.mode "native") (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "mode: native needs Kubernetes 1.29 or later, and this is %s: set mode: classic, or tell helm template the version of your cluster by --kube-version" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* Of a duration such as 15s. */}}
{{- define "bearer-sidecar.milliseconds" -}}
{{- mul (regexFind "^[0-9]+" .) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" .)) -}}
{{- end -}}

{{/* What the sidecar takes to end, in seconds: those of a preStop sleep, then the drain. */}}
{{- define "bearer-sidecar.secondsToEnd" -}}
{{- $given := include "bearer-sidecar.given" . | fromYaml -}}
{{- $config := include "bearer-sidecar.config" . | fromYaml -}}
{{- $drain := get $given "SIDECAR_DRAIN_MS" | default $config.SIDECAR_DRAIN_MS | default "25000" -}}
{{- add (div (add (int64 $drain) 999) 1000) (dig "preStop" "sleep" "seconds" 0 (.Values.lifecycle | default dict)) -}}
{{- end -}}

{{/* Here and not in the schema: helm lint judges the chart without values, and a configuration file may have all of them. */}}
{{- define "bearer-sidecar.checkSettings" -}}
{{- $given := include "bearer-sidecar.given" . | fromYaml -}}
{{- $faults := list -}}
{{- if not (include "bearer-sidecar.hasFile" .) -}}
{{- range $names := list (list "SIDECAR_BASE_URL") (list "SIDECAR_AUTH_URL" "SIDECAR_AUTH_ISSUER" "SIDECAR_AUTH_TOKEN_FILE") -}}
{{- $found := false -}}
{{- range $names -}}{{- if hasKey $given . -}}{{- $found = true -}}{{- end -}}{{- end -}}
{{- if not $found -}}
{{- $faults = append $faults (printf "config: %s is required, unless configFile has the settings" (join " or " $names)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.client.volume .Values.client.secretName -}}
{{- $faults = append $faults "client: set secretName or volume, not both" -}}
{{- end -}}
{{- if and .Values.configFile.content .Values.configFile.volume -}}
{{- $faults = append $faults "configFile: set content or volume, not both" -}}
{{- end -}}
{{- with .Values.configFile.content -}}
{{- $content := . -}}
{{- if kindIs "string" . -}}
{{- $content = fromYaml . -}}
{{- with $content.Error -}}
{{- $faults = append $faults (printf "configFile.content is no YAML: %s" .) -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "(?m)^[\\s-]*[\"']?(clientSecret|redisUrl)[\"']?:" (toYaml $content) -}}
{{- $faults = append $faults "configFile.content has clientSecret or redisUrl, and values are kept in every revision of a release: name a file by clientSecretFile or redisUrlFile" -}}
{{- end -}}
{{- end -}}
{{- with .Values.podMonitor -}}
{{- if and .scrapeTimeout (gt (include "bearer-sidecar.milliseconds" .scrapeTimeout | int64) (include "bearer-sidecar.milliseconds" .interval | int64)) -}}
{{- $faults = append $faults (printf "podMonitor.scrapeTimeout %s is longer than the interval %s, which Prometheus refuses" .scrapeTimeout .interval) -}}
{{- end -}}
{{- end -}}
{{- /* Beside an app the pod is the app's own: what it has is said by a value, or as in the chart's README. */ -}}
{{- $needed := include "bearer-sidecar.secondsToEnd" . | int64 -}}
{{- $grace := .Values.terminationGracePeriodSeconds | default (ternary $needed (ternary 45 30 (eq .Values.mode "classic")) (eq .Values.mode "standalone")) | int64 -}}
{{- if lt $grace $needed -}}
{{- $faults = append $faults (printf "SIDECAR_DRAIN_MS and preStop take %d s, and the pod is killed %d s after its SIGTERM, with every POST in flight: set terminationGracePeriodSeconds of the pod, and the value of that name, to %d or more" $needed $grace (add $needed 5)) -}}
{{- end -}}
{{- with .Values.standalone.service -}}
{{- if and .nodePort (eq .type "ClusterIP") -}}
{{- $faults = append $faults "standalone.service.nodePort needs the type NodePort or LoadBalancer" -}}
{{- end -}}
{{- if and .loadBalancerSourceRanges (ne .type "LoadBalancer") -}}
{{- $faults = append $faults "standalone.service.loadBalancerSourceRanges needs the type LoadBalancer" -}}
{{- end -}}
{{- if and (eq $.Values.mode "standalone") (ne .type "ClusterIP") (not (include "bearer-sidecar.config" $ | fromYaml).SIDECAR_LISTEN_REQUIRED_HEADER_NAME) -}}
{{- $faults = append $faults (printf "standalone.service.type %s: any client outside of the cluster that reaches the Service would call the partner in your name; set standalone.requiredHeader" .type) -}}
{{- end -}}
{{- end -}}
{{- with $faults -}}
{{- fail (printf "\n%s" (join "\n" .)) -}}
{{- end -}}
{{- end -}}

{{/* What suits the mode, under what the user says. Whole numbers stay whole: a large one would be written as 1e+06. */}}
{{- define "bearer-sidecar.config" -}}
{{- $given := include "bearer-sidecar.given" . | fromYaml -}}
{{- $hasFile := include "bearer-sidecar.hasFile" . -}}
{{- $config := dict "SIDECAR_ADMIN_LISTEN" "0.0.0.0:19464" "SIDECAR_DRAIN_MS" "25000" -}}
{{- /* What was learned of the partner's limit, and the token (encrypted), outlast a restart of the container. */ -}}
{{- $_ := set $config "SIDECAR_THROTTLE_STATE_FILE" "/var/lib/bearer-sidecar/limit.json" -}}
{{- $method := index $given "SIDECAR_AUTH_METHOD" -}}
{{- if .Values.client.assertion.audience -}}
{{- $method = "client_assertion" -}}
{{- $_ := set $config "SIDECAR_AUTH_METHOD" $method -}}
{{- $_ := set $config "SIDECAR_AUTH_ASSERTION_FILE" "/var/run/secrets/bearer-sidecar/token" -}}
{{- $_ := set $config "SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE" .Values.client.assertion.audience -}}
{{- $_ := set $config "SIDECAR_CLIENT_ID" .Values.client.assertion.clientId -}}
{{- else if not $hasFile -}}
{{- /* Files, not variables: they can be rotated without a restart, and they are in no environment dump. */ -}}
{{- /* What is sent instead of a client id is in settings of its own; an assertion as the grant has the id as its issuer. */ -}}
{{- $isAssertionGranted := eq (get $given "SIDECAR_AUTH_GRANT_TYPE") "urn:ietf:params:oauth:grant-type:jwt-bearer" -}}
{{- $hasClient := ternary $isAssertionGranted (ne (get $given "SIDECAR_AUTH_METHOD") "static") (eq (get $given "SIDECAR_AUTH_METHOD") "none") -}}
{{- if and $hasClient .Values.client.clientIdKey (not (hasKey $given "SIDECAR_CLIENT_ID")) -}}
{{- $_ := set $config "SIDECAR_CLIENT_ID_FILE" (printf "/etc/bearer-sidecar/client/%s" .Values.client.clientIdKey) -}}
{{- end -}}
{{- $sendsSecret := has ($method | default "client_secret_basic") (list "client_secret_basic" "client_secret_post") -}}
{{- if and $sendsSecret .Values.client.clientSecretKey (not (hasKey $given "SIDECAR_CLIENT_SECRET")) -}}
{{- $_ := set $config "SIDECAR_CLIENT_SECRET_FILE" (printf "/etc/bearer-sidecar/client/%s" .Values.client.clientSecretKey) -}}
{{- end -}}
{{- /* An assertion that is renewed every hour encrypts no file that outlasts it, and a token file or the parameters of none have no key at all. */ -}}
{{- if and $hasClient (ne ($method | default "") "client_assertion") -}}
{{- $_ := set $config "SIDECAR_AUTH_CACHE_FILE" "/var/lib/bearer-sidecar/token" -}}
{{- end -}}
{{- end -}}
{{- if or .Values.configFile.content .Values.configFile.volume -}}
{{- $_ := set $config "SIDECAR_CONFIG" (printf "/etc/bearer-sidecar/config/%s" .Values.configFile.fileName) -}}
{{- end -}}
{{- if and .Values.fleet.secretName (not (hasKey $given "SIDECAR_REDIS_URL")) -}}
{{- $_ := set $config "SIDECAR_REDIS_URL_FILE" (printf "/etc/bearer-sidecar/redis/%s" .Values.fleet.urlKey) -}}
{{- end -}}
{{- if ne .Values.mode "native" -}}
{{- $_ := set $config "SIDECAR_DRAIN_DELAY_MS" "15000" -}}
{{- $_ := set $config "SIDECAR_DRAIN_MS" "40000" -}}
{{- end -}}
{{- if eq .Values.mode "standalone" -}}
{{- $name := include "bearer-sidecar.name" . -}}
{{- $service := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) $service (printf "%s.%s" $service .Values.standalone.clusterDomain) -}}
{{- $_ := set $config "SIDECAR_LISTEN" "0.0.0.0:18080" -}}
{{- $_ := set $config "SIDECAR_ALLOWED_HOSTS" (concat $hosts .Values.standalone.allowedHosts | join ",") -}}
{{- with .Values.standalone.requiredHeader -}}
{{- $_ := set $config "SIDECAR_LISTEN_REQUIRED_HEADER_NAME" .name -}}
{{- if not (hasKey $given "SIDECAR_LISTEN_REQUIRED_HEADER_VALUE") -}}
{{- $_ := set $config "SIDECAR_LISTEN_REQUIRED_HEADER_VALUE_FILE" (printf "/etc/bearer-sidecar/callers/%s" .key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.config -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) -}}
{{- $_ := set $config $name (printf "%.0f" $value) -}}
{{- else if kindIs "map" $value -}}
{{- $_ := set $config $name (toJson $value) -}}
{{- else -}}
{{- $_ := set $config $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $config }}
{{ $name }}: {{ $value | quote }}
{{- end -}}
{{- end -}}

{{/* The configured limits that each pod keeps to for itself: several pods together send a multiple of them. A file in a volume is not seen here. */}}
{{- define "bearer-sidecar.limitsOfEachPod" -}}
{{- $given := include "bearer-sidecar.given" . | fromYaml -}}
{{- $file := include "bearer-sidecar.fileContent" . | fromYaml -}}
{{- $names := list -}}
{{- if not (or .Values.fleet.secretName (hasKey $given "SIDECAR_REDIS_URL") (hasKey $given "SIDECAR_REDIS_URL_FILE") (get ($file.fleet | default dict) "redisUrlFile")) -}}
{{- $variables := dict "rate" "SIDECAR_RATE" "maxRate" "SIDECAR_THROTTLE_MAX_RATE" "limits" "SIDECAR_THROTTLE_LIMITS" "share" "SIDECAR_THROTTLE_SHARE" -}}
{{- $top := $file.throttle | default dict -}}
{{- range $name, $variable := $variables -}}
{{- if hasKey $given $variable -}}{{- $_ := set $top $name (get $given $variable) -}}{{- end -}}
{{- end -}}
{{- range prepend ($file.routes | default list) dict -}}
{{- $own := merge (deepCopy (.throttle | default dict)) $top -}}
{{- range $name := list "rate" "maxRate" "limits" -}}
{{- if and (eq (toString ($own.share | default 1)) "1") (not (has (toString (get $own $name)) (list "" "auto" "<nil>" "[]"))) -}}
{{- $names = append $names (printf "throttle.%s" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join " and " (uniq $names) -}}
{{- end -}}
