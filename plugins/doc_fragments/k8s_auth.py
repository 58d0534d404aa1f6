# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options for the connection to the API server, which are those of ``AUTH_ARG_SPEC`` in kubernetes.core.

They are documented here, because Galaxy and Automation Hub show no documentation of a collection whose fragments are in another one.
"""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation of the options."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig file, several paths with V(:) between them, or the content of a kubeconfig as a dictionary.
      - Without it and without O(host), the client reads E(K8S_AUTH_KUBECONFIG), then C(~/.kube/config), then the service account of the pod.
    type: raw
  context:
    description: The context of the kubeconfig. Left out, it is E(K8S_AUTH_CONTEXT), or the kubeconfig's current context.
    type: str
  host:
    description: URL of the API server. Left out, it is E(K8S_AUTH_HOST), or that of the kubeconfig.
    type: str
  api_key:
    description: Bearer token. Left out, it is E(K8S_AUTH_API_KEY).
    type: str
  username:
    description: User name for basic authentication, which few API servers accept. Left out, it is E(K8S_AUTH_USERNAME).
    type: str
  password:
    description: Password for O(username). Left out, it is E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description: Path of a client certificate. Left out, it is E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the key of O(client_cert). Left out, it is E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description:
      - Path of the certificate authority of the API server, with all intermediate certificates. Left out, it is E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether the certificate of the API server is verified. Left out, it is E(K8S_AUTH_VERIFY_SSL), or that of the kubeconfig.
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - URL of the HTTP proxy for the connection. Left out, it is E(K8S_AUTH_PROXY).
      - E(HTTP_PROXY) and E(HTTPS_PROXY) are not read.
    type: str
  no_proxy:
    description:
      - Hosts, domains and networks that are reached without O(proxy), with commas between them. Left out, it is E(K8S_AUTH_NO_PROXY).
      - E(NO_PROXY) is not read.
    type: str
  proxy_headers:
    description: Headers for the O(proxy).
    type: dict
    suboptions:
      proxy_basic_auth:
        description: User name and password for the proxy, with a colon between them. Left out, it is E(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH).
        type: str
      basic_auth:
        description: User name and password for the server, with a colon between them. Left out, it is E(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH).
        type: str
      user_agent:
        description: Name of the client. Left out, it is E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
        type: str
  persist_config:
    description: Whether refreshed tokens are written to the kubeconfig file. Left out, it is E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description: User as whom requests are made. Left out, it is E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Groups as whose member requests are made. Left out, they are those of E(K8S_AUTH_IMPERSONATE_GROUPS).
    type: list
    elements: str
notes:
  - The connection has the options of M(kubernetes.core.k8s), and reads the same environment variables.
"""
