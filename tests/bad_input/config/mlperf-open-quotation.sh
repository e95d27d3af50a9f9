# expect: 3:15: a quotation without its end
# SPDX-License-Identifier: Apache-2.0
export MINIBS="1
