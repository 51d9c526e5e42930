#!/bin/sh
# Installs the real servers that servers_test.go asks, into a folder (npm and python3 are needed; 200 MB):
#
#     sh envs/tools/mcp/testdata/install.sh FOLDER
#     REPRISE_MCP_SERVERS=FOLDER go test ./envs/tools/mcp -run TestRealServers -v
set -eu
folder=${1:?the folder to install into}
mkdir -p "$folder"
cd "$folder"
npm install --no-fund --no-audit --prefix . \
    @modelcontextprotocol/server-everything@2026.8.31 \
    @modelcontextprotocol/server-filesystem@2026.8.31 \
    @modelcontextprotocol/server-memory@2026.8.31
python3 -m venv python
python/bin/pip install --quiet mcp-server-time==2026.10.19
